/** Loaded before each test file, so that 300 files share compiled code. It does not affect programs that a test starts. */
import { enableCompileCache } from 'node:module';

enableCompileCache('node_modules/.cache/edge-health-tests');
