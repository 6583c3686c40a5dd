/* How a peer ends: on SIGTERM or SIGINT, when its time is over, or with the process that started it. */
#ifndef PROCESS_H
#define PROCESS_H

#ifdef __cplusplus
extern "C" {
#endif

/* First of all in main(): threads started later inherit the blocked signals. */
void start_process(void);
void end_after(double seconds);
/* Waits up to `ms` and says whether it is time to end. */
int told_to_end(double ms);

#ifdef __cplusplus
}
#endif
#endif
