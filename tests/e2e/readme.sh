# The README tells the truth about what can be told mechanically.
. tests/e2e/lib.sh
driver_quoted() {
    awk '/^```python$/ {on = 1; next} /^```$/ {on = 0} on' README.md | diff - config/driver_example.py
}
targets_exist() {
    local t
    for t in $(grep -oE '`make [a-z0-9-]+' README.md | awk '{print $2}' | sort -u); do
        grep -qhE "^$t:" Makefile systemd/rules.mk tests/*/rules.mk || { echo "# no target $t"; return 1; }
    done
}
files_exist() {
    local f
    for f in $(grep -oE '`(config|tests|daemon|policy|proto|\.ci)/[A-Za-z0-9_./-]+`' README.md | tr -d '`' | sort -u); do
        [ -e "$f" ] || { echo "# no file $f"; return 1; }
    done
}
packages_named() { # every package of `make deps` is explained
    local p
    for p in $(sed -n '/^DEBS :=/,/[^\\]$/p' Makefile | tr -d '\\' | sed 's/DEBS :=//'); do
        p=$(echo "$p" | sed -E 's/^lib//; s/[0-9]*-dev$//; s/-mesa0$//; s/^gl1-mesa-dri$/mesa/')
        grep -qi -- "$p" README.md || { echo "# $p is not explained"; return 1; }
    done
}
ok "quotes the driver that is tested" driver_quoted
ok "names only make targets that exist" targets_exist
ok "names only files that exist" files_exist
ok "says what each library is for" packages_named
ok "has no placeholders left" test -z "$(grep -oE '@[A-Z0-9_]+@' README.md config/policies/reach/README.md tests/parity/README.md)"
