# The fault matrix in virtual time: every fault detected in its tick, answered, told apart and
# recovered from. `make fault` shows the table and does it again without the detectors.
. tests/e2e/lib.sh
"$B/tests/fault/matrix" --tap
