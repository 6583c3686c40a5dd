/** `npm run mutation`. See harness/mutation/README.md. */
export default {
  plugins: ['@stryker-mutator/tap-runner', './harness/mutation/ignore-wording.ts'],
  testRunner: 'tap',
  tap: {
    // Property tests are left out: they take seconds each, and every mutant runs the tests that reach it.
    testFiles: [
      'harness/engine/**/!(*.properties).test.ts',
      'harness/record/{evidence,evidence.clocks}.test.ts',
      'harness/record/evidence/*.test.ts',
    ],
    nodeArgs: ['--no-warnings', '-r', '{{hookFile}}', '{{testFile}}'],
  },
  ignorers: ['wording'],
  mutate: ['harness/engine/**/*.ts', 'harness/record/evidence.ts', 'harness/record/evidence/*.ts', '!**/*.test.ts'],
  // What the tests of the engine import, and nothing else, is copied to the sandbox.
  ignorePatterns: [
    '**',
    '!package.json',
    '!harness/engine/**',
    '!harness/record/entries.ts',
    '!harness/record/evidence*.ts',
    '!harness/record/evidence/**',
    '!harness/observe/coverage.ts',
    '!src/core/**',
    '!testkit/effort.ts',
    '!testkit/weeks/**',
  ],
  coverageAnalysis: 'perTest',
  concurrency: 2,
  timeoutMS: 10_000,
  // A mutant that survives is a hole in the tests, or is named in a comment: "Stryker disable next-line MUTATOR: reason".
  thresholds: { high: 100, low: 100, break: 100 },
  reporters: ['html', 'clear-text', 'progress-append-only'],
  clearTextReporter: { reportTests: false },
  htmlReporter: { fileName: 'build/mutation/mutation.html' },
  tempDirName: 'build/mutation/sandbox',
  packageManager: 'npm',
};
