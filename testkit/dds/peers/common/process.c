#include "process.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "events.h"

static sigset_t ending;
static int ended;
static double end_ms = INFINITY;

void start_process(void) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == 1) exit(1);
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  sigprocmask(SIG_BLOCK, &ending, NULL);
  signal(SIGPIPE, SIG_IGN);
}

void end_after(double seconds) { end_ms = steady_ms() + seconds * 1e3; }

int must_end(double ms) {
  double until = fmin(steady_ms() + ms, end_ms);
  while (!ended) {
    double left = fmax(0, until - steady_ms());
    struct timespec timeout = {(time_t)(left / 1e3), (long)(fmod(left, 1e3) * 1e6)};
    if (sigtimedwait(&ending, NULL, &timeout) > 0) ended = 1;
    else if (steady_ms() >= until) break;
  }
  if (steady_ms() >= end_ms) ended = 1;
  return ended;
}
