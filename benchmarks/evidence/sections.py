"""The words of the page: its head, and what each section holds."""

HEAD = """# Evidence

Every figure that this project claims, on one page: ours, the best peer's on the same rows, and how
many times better ours is (below 1, the rival wins, and the page says so). A peer is chosen by the
figures: it is the best of all that ran. Where nothing else measures the same, the figure stands
beside what is promised or asked for. This page is made from `benchmarks/evidence/results/*.json`
by `python benchmarks/evidence/page.py`; `python benchmarks/evidence/every.py` measures all of it
again, and `--quick --into build/evidence` in short. With `--marked` the page says which figures
are of code that has changed since."""

SECTIONS = {
    "accuracy": (
        "Accuracy",
        """\
Squared error of the learnt subspace over that of the best subspace of the same rank: 1 is
perfect. Methods of the literature run at their published settings, and at the best of a grid on
that very stream, which no user can have beforehand; the best of all of them is the peer. First
beside peers that hold no more memory, then beside any. On Synth(0.0001) and Synth(0.001) all
eigenvalues are nearly one, and every subspace is within 1.5 % of the optimum: there a method that
averages for long, with a step that is known only afterwards, is ahead. MOSES in blocks of 1000
rows holds more rows than directions. The running scatter, four lines of NumPy, is exact everywhere,
for d^2 numbers. More: [equal rank](equal_rank.md).""",
    ),
    "speed": (
        "Speed",
        """\
Processor time of a row, one thread, each contender at the block size at which it is fastest.
Errors differ: [time, memory and error](results.md) has them beside the times.""",
    ),
    "memory": (
        "Memory",
        """\
The most that NumPy's arrays and Python's objects held at once. First beside peers whose error on
the same stream is no larger, all in calls of 50 rows; then beside peers of any error, ours in
calls of 50 rows and each peer at its fastest block. Up to some 200 columns submerge spends its
budget on the whole scatter, and is exact, as the running scatter is: four lines of NumPy. gensim's
merge keeps no mean, energy or bounds.""",
    ),
    "bytes": (
        "Bytes",
        """\
What a client sends. A report holds more than directions: factors, and sketches for the limits of
alarms. Few channels make a small covariance, which may be smaller than a report.""",
    ),
    "scaling": (
        "Scaling",
        """\
Rows a second and memory against columns, rank, nodes and depth, beside the model of the method;
and Figure 2 and Table 1 of *Federated PCA with Adaptive Rank Estimation*. What is asked for: the
time that is amortised over the nodes is at most 1.2 times that of one node over their number, and
the root's error at most .5 % above the optimum. Curves are in [figures of papers](papers.md).""",
    ),
    "faults": (
        "Faults survived",
        """\
Simulated fleets with failures of every kind, followed by an oracle reading by reading; and real
processes, killed as by a power cut. What is asked for is none.""",
    ),
    "alarms": (
        "False alarms promised and realised",
        """\
Nodes of a generated plant for some virtual weeks: the command among the runs below says how
many, and of how many seeds. What is asked for is at most what the settings promise. A short
run says little of rare events: [alarms](alarms.md) has five seeds of 40 nodes and 30 days on
earlier code, and there the room has more false alarms than are promised.""",
    ),
    "detection": (
        "Detection beside other rules",
        """\
On the same rows. First at the same realised share of false alarms ([detection](detection.md));
then the detectors for river and PyOD beside those libraries' own at their defaults ([beside river
and PyOD](faces.md)), the area under the curve (AUC) and the time of a row.""",
    ),
    "kit": (
        "What one kit can move",
        """\
One node of 40 with valid credentials sends what it likes. The figure is the largest principal
angle between the model and that of the other 39; the other figure is ours without bounds, as the
plain merge of the literature has it. More: [bounded influence](influence.md).""",
    ),
}
"""By section, its title and what stands under it."""
