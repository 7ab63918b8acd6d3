"""Reads recordings with PyPI's mcap: check.py LIST, lines of `path ticks messages last_ns`.

Every one must hold what our own reader found in it. Exit status 0, 1, or 77 without the package.
"""
import sys

try:
    from mcap.reader import make_reader
except ImportError:
    print(
        "SKIPPED: the second reader is not there: "
        "python3 -m venv DIR && DIR/bin/pip install mcap zstandard lz4, then RECORD_PYTHON=DIR/bin/python"
    )
    sys.exit(77)


def look(path):
    with open(path, "rb") as f:
        reader = make_reader(f, validate_crcs=True)
        base = next(int(m.metadata["base_ns"]) for m in reader.iter_metadata() if m.name == "actd")
        ticks = messages = last = 0
        for schema, channel, message in reader.iter_messages(log_time_order=False):
            messages += 1
            if channel.topic == "/tick":
                ticks += 1
                last = max(last, message.log_time - base)
        statistics = reader.get_summary().statistics
        assert statistics.message_count == messages, "statistics"
        return ticks, messages, last


def main():
    bad = 0
    lines = [line.split() for line in open(sys.argv[1])]
    for path, *want in lines:
        got = look(path)
        if got != tuple(map(int, want)):
            print(f"{path}: mcap finds {got}, ours {want}")
            bad += 1
    print(f"PyPI's mcap reads {len(lines)} recordings, {bad} of them otherwise than we do")
    return bad > 0 or not lines


sys.exit(main())
