# Two robots on one computer; TCP on loopback.
cp /etc/actd/$ROBOT.yaml /etc/actd/left.yaml # `instance` is the same: the place is the unit's
ok "two robots" systemctl start "$UNIT" actd@left
ok "each with its own sockets" test -S $RUN/status -a -S /run/actd/left/status
ok "one stops" systemctl stop actd@left
ok "the other's sockets stay" test -S $RUN/status -a ! -e /run/actd/left
rm /etc/actd/left.yaml

without caps.conf
echo 'metrics: {listen: "127.0.0.1:9464"}' >>/etc/actd/$ROBOT.yaml
ok "with TCP on loopback, every forbidden call deadly" with /usr/share/doc/actd/examples/tcp.conf strict.conf
scrape() {
    exec 3<>/dev/tcp/127.0.0.1/9464 && printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3 && grep "^actd_" <&3
}
ok "metrics over HTTP" wait_for 5 scrape
ok "exposure of the unit that runs" systemd-analyze security --threshold=15 "$UNIT"
without tcp.conf strict.conf
sed -i '/^metrics:/d' /etc/actd/$ROBOT.yaml
ok "and without it again" with caps.conf
