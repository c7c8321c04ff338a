"""A Flower app: the pumps of a federation learn what is normal for all of them."""
