// blas_env: OpenBLAS reads its environment while it is being loaded, before main. A variable
// left over from somebody's experiments can make it several times slower, crash it, or change
// the last bits of every result; so the daemon fixes the environment and executes itself again
// before it does anything else. Class plain.
#ifndef ACTD_BLAS_ENV_H
#define ACTD_BLAS_ENV_H

// Clears OPENBLAS_*, GOTO_* and OMP_*, pins one thread and, on x86-64 with AVX2 and FMA, the
// "Haswell" kernels: none of the AVX-512 kernels of OpenBLAS 0.3.21. OpenBLAS computes only on an
// x86-64 with AVX but not both AVX2 and FMA, or when asked for (kernels.h); AVX2's and AVX-512's
// kernels are our own and have each their own last bits, and a replay takes those that recorded.
// Returns at once when the environment is already so; otherwise does not return unless execve
// fails (-errno).
int blas_env_fix(char **argv);

#endif
