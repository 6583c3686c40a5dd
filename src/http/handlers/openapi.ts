import { readFileSync } from 'node:fs';
import { type Handler, sendTagged } from '../context.ts';

/** GET /openapi.json: the document, generated at build time from the schemas that validate the queries. */
export function openapi(file: string): Handler {
  let loaded: { body: Buffer; tag: string } | null = null;
  return async (context) => {
    if (!loaded) {
      // Loaded on the first request, because OpenSSL and the document take memory and few machines need them.
      const { createHash } = await import('node:crypto');
      const body = readFileSync(file);
      loaded = { body, tag: `"${createHash('sha256').update(body).digest('base64url').slice(0, 16)}"` };
    }
    return sendTagged(context, 'application/json', loaded.body, loaded.tag);
  };
}
