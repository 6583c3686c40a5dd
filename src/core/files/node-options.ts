/** Options with which bin/edge-health and the commands save memory in long-running programs. They make short-lived programs slower. */
const MEMORY_SAVING =
  /^--(?:lite-mode|optimize-for-size|no-opt|no-maglev|max-semi-space-size|v8-pool-size|external-memory|max-old-space-size)/;

/** Node's options of this process without those that save memory, for a short-lived program with much computation. */
export function optionsForShortLived(): readonly string[] {
  return process.execArgv.filter((option) => !MEMORY_SAVING.test(option));
}
