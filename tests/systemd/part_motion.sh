# The robot comes and an operator arms: all with the unit as it is.
robot_start
ok "an unprivileged driver is enough for READY" wait_for 20 is_mode READY
ok "it is not armed by itself" stays_disarmed
ok "an operator arms, the policy drives" run
ok "who did it is logged" logged "ARM by user $(id -u pilot) .*: armed"
