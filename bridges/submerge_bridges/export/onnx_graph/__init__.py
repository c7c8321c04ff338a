"""A recipe as an ONNX model: rows and state go in, scores and the state after them come out.

`model.py` makes the whole file and checks it, `scores.py` and `alarms.py` its two parts, `nodes.py`
writes nodes. Nothing here runs ONNX Runtime; it needs the extra `onnx`.
"""
