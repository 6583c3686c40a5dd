import { status as harnessStatus, report, verify } from '../../harness/run/record-commands.ts';
import { run as harnessRun } from '../../harness/run/run.ts';
import { start, stop } from '../../harness/run/start-stop.ts';
import { JOBS } from '../../ops/jobs.ts';
import { list } from '../../ops/list.ts';
import { notify } from '../../ops/notify.ts';
import { restoreBackup } from '../../ops/restore_backup.ts';
import { scheduler } from '../../ops/scheduler.ts';
import { checkConfig } from '../../src/cli/check-config.ts';
import { nodes } from '../../src/cli/nodes.ts';
import { reload } from '../../src/cli/reload.ts';
import { rosSetup } from '../../src/cli/ros-setup.ts';
import { run } from '../../src/cli/run.ts';
import { sensors } from '../../src/cli/sensors.ts';
import { status } from '../../src/cli/status.ts';

interface Documented {
  readonly summary: string;
  readonly usage: string;
  readonly help: string;
}

const COMMANDS: readonly Documented[] = [run, checkConfig, reload, status, nodes, sensors, rosSetup];
const HARNESS: readonly Documented[] = [harnessRun, start, harnessStatus, stop, report, verify];

const section = (program: string, { help, summary, usage }: Documented): string => `### ${program} ${usage.split(' ')[0]}

${summary}.

\`\`\`
${program} ${usage}${help.trim() === '' ? '' : `\n\n${help.replace(/^\n+|\s+$/g, '')}`}
\`\`\`
`;

/** The reference page of the command line, as Markdown: the output of --help for each command. */
export async function renderCommandLine(): Promise<string> {
  const jobs: readonly Documented[] = [
    ...(await Promise.all(Object.values(JOBS).map((load) => load()))),
    restoreBackup,
    list,
    notify,
    scheduler,
  ];
  const sections = (program: string, commands: readonly Documented[]): string =>
    commands.map((command) => section(program, command)).join('\n');
  return `# Command line

Generated from the commands' \`--help\` by \`npm run generate\`. [Exit codes](exit-codes.md) are on their own page.

\`edge-health help\` lists the commands, \`edge-health version\` prints the version. In a checkout, the program is \`bin/edge-health\`; \`npm start\` and \`npm run build\` build it.

## Service

${sections('edge-health', COMMANDS)}
## Jobs

Each job also accepts \`--config FILE\`, \`--url URL\` (the service's address, if it is not the running one) and \`--json\`.

${sections('edge-health ops', jobs)}
## Reliability harness

${sections('edge-health harness', HARNESS)}`;
}
