import { readdir } from 'node:fs';
import type { StatusDocument } from '../http/api/schema.ts';

/** Resource usage of the service itself. */
export async function ownProcess(): Promise<StatusDocument['process']> {
  const { system, user } = process.cpuUsage();
  return {
    resident_memory_bytes: process.memoryUsage.rss(),
    cpu_seconds: (user + system) / 1e6,
    open_files: await openFiles(),
  };
}

function openFiles(): Promise<number | null> {
  return new Promise((resolve) => {
    // One of them belongs to the directory listing itself.
    readdir('/proc/self/fd', (error, names) => resolve(error ? null : names.length - 1));
  });
}
