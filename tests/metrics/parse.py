#!/usr/bin/env python3
"""Reads Prometheus text from standard input with the official client's parser.

Prints one line per sample, "NAME LABEL=VALUE ... VALUE", for a comparison. Exit status 77
where prometheus_client is not installed (pip install prometheus_client).
"""
import sys

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    sys.exit(77)

samples = 0
for family in text_string_to_metric_families(sys.stdin.read()):
    if family.type not in ("counter", "gauge", "histogram"):
        sys.exit(f"{family.name}: type {family.type}")
    if not family.documentation:
        sys.exit(f"{family.name}: no HELP")
    if not family.samples:
        print(f"# {family.name} has no samples")
    for sample in family.samples:
        samples += 1
        labels = " ".join(f"{k}={v!r}" for k, v in sorted(sample.labels.items()))
        print(sample.name, labels, sample.value)
print(f"# {samples} samples")
