// log_tool: `actd log info|recover|cut|cat LOG`: what is in a recording, what can be saved of a
// damaged one, a piece of it, its messages as text. Any MCAP file will do; of ours there is more to
// say. plain.
#ifndef ACTD_LOG_TOOL_H
#define ACTD_LOG_TOOL_H

// argv[0] is "log". Returns the exit status: 0; 1 damage was found, or something was lost; 64 usage;
// 65 no recording, or nothing in it can be saved; 66 it cannot be read; 70 no memory; 74 the output
// cannot be written; 130 stopped by Ctrl-C.
int log_main(int argc, char **argv);

#endif
