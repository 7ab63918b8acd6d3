# The robot's computer was switched off and on.
ok "the robot is there by itself" wait_for 20 is_state active
ok "and waits for its driver, disarmed" wait_for 10 is_mode WAITING
robot_start
ok "READY when the driver comes, not armed" stays_disarmed
