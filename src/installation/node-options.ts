/** What bin/edge-health and the commands save memory with in programs that live long, and what costs those time that end soon. */
const SAVING = /^--(?:lite-mode|no-opt|no-maglev|max-semi-space-size|v8-pool-size|external-memory|max-old-space-size)/;

/** Node's options of this process, for a program that ends soon and has much to reckon. */
export function optionsForShortLived(): readonly string[] {
  return process.execArgv.filter((option) => !SAVING.test(option));
}
