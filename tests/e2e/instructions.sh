# What an inference costs in instructions has not grown: tests/bench/count_instructions.
. tests/e2e/lib.sh
tests/bench/count_instructions
