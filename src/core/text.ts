/** A URL in a text: scheme, user and password, host and port, the rest. */
const URLS = /\b([a-z][a-z0-9+.-]*:\/\/)(?:[^\s"'/?#]*@)?([^\s"'/?#]*)([/?#][^\s"']*)?/gi;

/** A text whose URLs show scheme and host only: what follows, or a password before the host, is often what gives access. */
export function withoutUrlPaths(text: string): string {
  return text.replaceAll(URLS, (_, scheme: string, host: string, rest: string | undefined) => `${scheme}${host}${rest ? '/…' : ''}`);
}
