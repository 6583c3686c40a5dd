/* The end of a peer: on SIGTERM or SIGINT, after its duration, or with its parent process. */
#ifndef PROCESS_H
#define PROCESS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Call it first in main(): threads started later inherit the blocked signals. */
void start_process(void);
void end_after(double seconds);
/* Waits up to `ms`; returns whether the peer must end. */
int must_end(double ms);

#ifdef __cplusplus
}
#endif
#endif
