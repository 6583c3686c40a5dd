/**
 * Whether the boot-time clock went on from one boot to the next: a container that was started again, under a kernel that runs on. Ids are
 * those of src/system/boot-id.ts, which begin with the kernel's own.
 */
export function sharesClock(before: string | null, now: string): boolean {
  const kernel = (id: string): string => (id.includes('/') ? (id.split('/')[0] as string) : '');
  return before !== null && (before === now || (kernel(now) !== '' && kernel(before) === kernel(now)));
}
