"""Runs scikit-learn for make bench: peer.py EXAMPLES, one JSON command a line on standard input, one JSON answer a line.

{"n":N}  fit the examples and evaluate the fit by five folds, N times. The answer is {"cpu":ms}, the CPU time of one. A row of EXAMPLES is a concept and 256 float32."""
import json
import os
import sys
import time

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"

import numpy
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

rows = numpy.fromfile(sys.argv[1], "float32").reshape(-1, 257)
x, y = rows[:, 1:].copy(), rows[:, 0].astype(int)
for line in sys.stdin:
    n = json.loads(line)["n"]
    start = time.process_time()
    for _ in range(n):
        head = LogisticRegression(C=250, max_iter=1000)
        head.fit(x, y)
        cross_val_predict(head, x, y, cv=5, method="predict_proba")
    print(json.dumps({"cpu": (time.process_time() - start) / n * 1e3}), flush=True)
