/** Loaded before each test file: what Node compiles once is not compiled again by 300 files. Programs that a test starts are left alone. */
import { enableCompileCache } from 'node:module';

enableCompileCache('node_modules/.cache/edge-health-tests');
