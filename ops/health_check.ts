import { checkHealth, healthLines } from './health/run.ts';
import type { Job } from './lib/job.ts';

const HELP = `Looks at the unit and the service, open alerts, storage, the publish rate, expected ROS nodes and containers, free disk space,
the clock, power, the last backup and the scheduler's jobs. A summary first, then a line for each finding with what to do, worst first.
What is expected is said by ops.check in the configuration. Each run is kept in logs/health_check_DATE.log below storage.path.

  --all           a line for what is well, too
  --quiet         nothing at all when all is well
  --dry-run       writes neither the log nor what the next check compares with
`;

export const healthCheck: Job = {
  name: 'health_check',
  summary: 'What is wrong with this appliance, and what to do about it',
  usage: 'health_check [--all] [--quiet] [--dry-run]',
  help: HELP,
  options: {
    all: { type: 'boolean' },
    quiet: { type: 'boolean' },
    'dry-run': { type: 'boolean' },
  },
  positionals: 0,
  run: async (context, { options }) => {
    const health = await checkHealth(context, { writes: options['dry-run'] !== true });
    const isSilent = options['quiet'] === true && health.status === 'OK';
    const lines = isSilent ? [] : healthLines(health, { all: options['all'] === true });
    return { status: health.status, lines, document: health.document };
  },
};
