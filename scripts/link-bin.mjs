// Lets `npx edge-health` find the checkout's own program: npm links the programs of dependencies, not those of the package itself.
import { mkdirSync, rmSync, symlinkSync } from 'node:fs';

const link = 'node_modules/.bin/edge-health';
mkdirSync('node_modules/.bin', { recursive: true });
rmSync(link, { force: true });
symlinkSync('../../bin/edge-health', link);
