"""StreamingPCA where scikit-learn expects a transformer: scale, reduce, classify.

Digits of 64 pixels become 20 components. The same estimator then learns a stream in
pieces, and gives the likelihood of each new row, so that unusual ones stand out.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from submerge.sklearn import StreamingPCA

X, y = load_digits(return_X_y=True)  # comes with scikit-learn
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

for reduce in (StreamingPCA(n_components=20), PCA(n_components=20)):
    pipeline = make_pipeline(StandardScaler(), reduce, LogisticRegression(max_iter=1000))
    pipeline.fit(X_train, y_train)
    print(f"{type(reduce).__name__:13} accuracy {pipeline.score(X_test, y_test):.3f}")

stream = StreamingPCA(n_components=20)
for rows in np.array_split(X_train, 30):
    stream.partial_fit(rows)
share = stream.explained_variance_ratio_.sum()
print(f"{stream.n_samples_seen_} rows in 30 pieces: {stream.n_components_} components")
print(f"hold {share:.1%} of the variance; what ran: {stream.engine_.algorithm}")

upside_down = X_test[:, ::-1]
print(f"log-likelihood of new digits    {stream.score(X_test):7.1f}")
print(f"and of the same, upside down    {stream.score(upside_down):7.1f}")
