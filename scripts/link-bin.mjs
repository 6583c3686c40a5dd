// Links the checkout's own program for `npx edge-health`, because npm links only the programs of dependencies.
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';

const link = 'node_modules/.bin/edge-health';
mkdirSync('node_modules/.bin', { recursive: true });
rmSync(link, { force: true });
symlinkSync('../../bin/edge-health', link);
