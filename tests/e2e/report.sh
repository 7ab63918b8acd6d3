# The page of a run: of the simulated robot, recorded, replayed and shown; well-formed, with nothing
# from elsewhere, and (where a browser is installed) without a complaint, at 1280 and 400 pixels.
. tests/e2e/lib.sh
robot_yaml "$T/robot.yaml"
mkdir -p "$T/rec"
printf 'record: {mode: always, directory: %s/rec}\n' "$T" >>"$T/robot.yaml"

well_formed() { # every tag closed, every name known, no address
    python3 - "$1" <<'PY'
import re, sys
from html.parser import HTMLParser
text = open(sys.argv[1], encoding="utf-8").read()
alone, stack, wrong = {"meta", "br", "img", "path", "rect"}, [], []
class P(HTMLParser):
    def handle_starttag(self, tag, attrs):
        names = [k for k, _ in attrs]
        if len(names) != len(set(names)):
            wrong.append(f"{tag}: an attribute twice at {self.getpos()}")
        for k, v in attrs:
            if k in ("src", "href") and not (v or "").startswith("data:"):
                wrong.append(f"{tag} {k}={v}")
        stack.append(tag)
    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        stack.pop()
        if tag not in alone:
            wrong.append(f"<{tag}/> at {self.getpos()}")
    def handle_endtag(self, tag):
        if not stack or stack.pop() != tag:
            wrong.append(f"</{tag}> at {self.getpos()}")
P(convert_charrefs=True).feed(text)
wrong += [f"not closed: {stack}"] if stack else []
wrong += [w for w in ("http:", "https:", "@import", "url(", "nan", "inf ") if w in
          re.sub(r"<(script|style|pre|td|dd)\b.*?</\1>", lambda m: m.group() if m.group(1) in
                 ("script", "style") else "", text, flags=re.S)]
print("\n".join("# " + w for w in wrong[:10]))
sys.exit(bool(wrong))
PY
}

as_xml() { # what xmllint says of it as XML, where it is installed: all but the script is
    command -v xmllint >/dev/null || return 0
    sed -e 's|<!DOCTYPE html>||' -e 's|<script>.*</script>||' "$1" | xmllint --noout - 2>"$T/xml" ||
        { head -5 "$T/xml" | sed 's/^/# /'; return 1; }
}

browser=$(command -v chromium-headless-shell || command -v chromium || command -v google-chrome)
opens() { # opens FILE: no complaint, not wider than the window
    local w
    for w in 1280 400; do
        # The page is given a line that says whether it fits; a complaint goes to stderr.
        sed "s|</body>|<script>document.title=innerWidth+(document.documentElement.scrollWidth>innerWidth?' wide':' fits')</script></body>|" \
            "$1" >"$T/page.html"
        timeout 60 "$browser" --no-sandbox --disable-gpu --headless --enable-logging=stderr \
            --user-data-dir="$T/chromium" --window-size="$w",900 --dump-dom "file://$T/page.html" \
            >"$T/dom" 2>"$T/console" || { tail -3 "$T/console" | sed 's/^/# /'; return 1; }
        grep -q "<title>[0-9]* fits</title>" "$T/dom" ||
            { echo "# at $w: $(grep -o '<title>[^<]*' "$T/dom" | head -1)"; return 1; }
        if grep -q 'CONSOLE' "$T/console"; then
            grep 'CONSOLE' "$T/console" | head -3 | sed 's/^/# /'
            return 1
        fi
    done
}

smaller() { [ "$(stat -c %s "$1")" -lt "$2" ]; }

run_time=120
[ "${SAN:-0}" = 1 ] && run_time=250
ok "two episodes, recorded" exit_of 0 timeout $run_time "$B/actd-demo" -c "$T/robot.yaml" -n 2 -s 3000 --need 0 -o "$T/demo"
ok "there is a recording" bash -c "ls '$T'/rec/*.mcap"
ok "actd replay report" exit_of 0 "$B/actd" replay report "$T/rec" -o "$T/report.html"
ok "it is well-formed" well_formed "$T/report.html"
ok "also as XML" as_xml "$T/report.html"
ok "below 5 MB" smaller "$T/report.html" 5000000
for word in RUNNING shoulder_pan 'data:image/jpeg' 'Lateness of ticks' 'Drops and losses' 'driven by reach'; do
    ok "it shows: $word" grep -q "$word" "$T/report.html"
done
ok "verify --report" exit_of 0 "$B/actd" replay verify "$T/rec" --report "$T/verify.html"
ok "it carries the verdict" grep -q 'A replay gives the same' "$T/verify.html"
ok "eval --report" exit_of 0 "$B/actd" replay eval "$T/rec" --policy config/policies/reach --every 5 --report "$T/eval.html"
ok "it is well-formed" well_formed "$T/eval.html"
ok "in its own run the policy is nearer than standing still" bash -c "! grep -q 'no better' '$T/out'"
cp -r config/policies/reach "$T/other"
sed -i 's/^action_names: .*/action_names: [gripper.pos, wrist_roll.pos, wrist_flex.pos, elbow_flex.pos, shoulder_lift.pos, shoulder_pan.pos]/' "$T/other/policy.yaml"
ok "joints exchanged" exit_of 0 "$B/actd" replay eval "$T/rec" --policy "$T/other" --every 5
ok "is seen" logged "$T/out" 'no better than standing still'
for page in report eval; do
    if [ -n "$browser" ]; then
        ok "a browser opens the $page" opens "$T/$page.html"
    else
        n=$((n + 1))
        echo "ok $n - a browser opens the $page # SKIP no browser is installed"
    fi
done
