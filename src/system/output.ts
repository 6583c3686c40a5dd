import { constants } from 'node:os';
import { getSystemErrorMessage } from 'node:util';

/** What a shell reports of a program that SIGPIPE ended; Node ignores the signal. */
const CLOSED_PIPE_EXIT = 128 + constants.signals.SIGPIPE;
/** EX_IOERR of sysexits(3). */
const OUTPUT_FAILED_EXIT = 74;

/** Ends the program when its standard output cannot be written: quietly when the reader has closed the pipe, else with the reason. */
export function exitWhenOutputFails(): void {
  process.stdout.on('error', ({ code, errno = 0, message }: NodeJS.ErrnoException) => {
    if (code === 'EPIPE') process.exit(CLOSED_PIPE_EXIT);
    const reason = errno < 0 ? getSystemErrorMessage(errno) : message;
    process.stderr.write(`edge-health: cannot write the output: ${reason.charAt(0).toUpperCase()}${reason.slice(1)}\n`);
    process.exit(OUTPUT_FAILED_EXIT);
  });
  // A log or an error that nobody can read: the work goes on.
  process.stderr.on('error', () => undefined);
}
