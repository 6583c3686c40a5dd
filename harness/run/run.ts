import { fileURLToPath } from 'node:url';
import { printable } from '../../src/core/text.ts';
import { PROGRAMS } from '../../src/installation/programs.ts';
import { systemClocks } from '../../src/system/clocks.ts';
import { serviceManager, watchdogSeconds } from '../../src/system/notify.ts';
import { VERDICT_EXIT } from '../engine/judgement.ts';
import { Display } from './display.ts';
import { holdFolder } from './folder.ts';
import { EXIT } from './refusal.ts';
import { renderReport } from './render.ts';
import { settleRequest } from './request.ts';
import { Session, type SessionOptions } from './session.ts';

export interface RunOptions extends SessionOptions {
  /** Of the unit: nothing is left to do once the run is complete. */
  readonly requestFile: string | null;
}

const PING_MS = 5000;

/** Watches until the run is complete or stopped, and has the report written. The exit code is that of the verdict. */
export async function runHarness(options: RunOptions): Promise<number> {
  const { folder, requestFile } = options;
  const held = holdFolder(folder);
  try {
    const clocks = systemClocks();
    const display = new Display({
      stream: process.stderr,
      manager: serviceManager(process.env, fileURLToPath(PROGRAMS.sdNotify), (level, message) =>
        process.stderr.write(`${level}: ${printable(message)}\n`),
      ),
      watchdogSeconds: watchdogSeconds(process.env, process.pid),
      monotonicSeconds: () => clocks.monotonicSeconds(),
    });
    const session = new Session(options, display, clocks);
    session.resumeIfThere();
    const reason = await session.watch();
    if (reason === null) return EXIT.ok;
    display.end();
    display.say(reason === 'complete' ? 'the run is complete; writing the report' : 'stopped; writing the report');
    const pinging = setInterval(() => display.keepAlive(), PING_MS);
    const code = await renderReport(folder);
    clearInterval(pinging);
    if (code === null) display.say(`the record is whole; write the report with: edge-health harness report ${folder}`);
    if (reason === 'complete' && requestFile !== null) settleRequest(requestFile);
    return code ?? VERDICT_EXIT[session.verdict()];
  } finally {
    held.release();
  }
}
