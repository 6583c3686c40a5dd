/**
 * Templates without logic: `{{name}}` is a value, `{{#name}}…{{/name}}` is repeated for each element of a list and left out where it
 * is empty, false, null or 0, `{{^name}}…{{/name}}` is there only then. In a list the names of the element come before those outside;
 * `{{.}}` is the element itself, `{{first}}` and `{{last}}` tell where it stands (for commas: `{{^last}},{{/last}}`).
 */
type Node =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'value'; readonly name: string }
  | { readonly kind: 'section'; readonly name: string; readonly isInverted: boolean; readonly nodes: readonly Node[] };

export type Template = readonly Node[];
type Scope = Readonly<Record<string, unknown>>;

const TAG = /\{\{\s*([#^/]?)\s*([A-Za-z_][A-Za-z0-9_]*|\.)\s*\}\}/g;

/** Throws with the place where the text is no template. */
export function parseTemplate(text: string): Template {
  const stack: { name: string; isInverted: boolean; nodes: Node[] }[] = [{ name: '', isInverted: false, nodes: [] }];
  const top = () => stack.at(-1) as (typeof stack)[number];
  const literal = (part: string, at: number): void => {
    const stray = part.indexOf('{{'); // Closing braces alone are common in JSON.
    if (stray >= 0) throw new Error(`line ${lineAt(text, at + stray)}: ${part.slice(stray, stray + 20)} is no placeholder`);
    if (part !== '') top().nodes.push({ kind: 'text', text: part });
  };
  let end = 0;
  for (const { 0: tag, 1: mark, 2: name = '', index } of text.matchAll(TAG)) {
    literal(text.slice(end, index), end);
    end = index + tag.length;
    if (mark === '') top().nodes.push({ kind: 'value', name });
    else if (mark !== '/') stack.push({ name, isInverted: mark === '^', nodes: [] });
    else {
      const { isInverted, name: opened, nodes } = top();
      if (stack.length === 1 || opened !== name) {
        throw new Error(`line ${lineAt(text, index)}: ${tag} closes what is not open${stack.length > 1 ? `; {{#${opened}}} is` : ''}`);
      }
      stack.pop();
      top().nodes.push({ kind: 'section', name, isInverted, nodes });
    }
  }
  literal(text.slice(end), end);
  if (stack.length > 1) throw new Error(`{{#${top().name}}} is not closed`);
  return top().nodes;
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length;
}

/** How values are written where a body of this type has them. */
export function escaperOf(contentType: string): (text: string) => string {
  const type = (contentType.split(';', 1)[0] ?? '').trim().toLowerCase();
  if (type.includes('json')) return (text) => JSON.stringify(text).slice(1, -1);
  if (/\/(.+\+)?(xml|html)$/.test(type)) return (text) => text.replaceAll(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
  if (type === 'application/x-www-form-urlencoded') return encodeURIComponent;
  return (text) => text;
}

/** Throws for a name that there is not: a mistyped placeholder would send empty notifications for ever. */
export function render(template: Template, values: Scope, escaped: (text: string) => string): string {
  const scopes: Scope[] = [values];
  const look = (name: string): unknown => {
    const scope = scopes.findLast((candidate) => Object.hasOwn(candidate, name));
    if (!scope) throw new Error(`there is no placeholder {{${name}}} here`);
    return scope[name];
  };
  const written = (nodes: Template): string =>
    nodes
      .map((node) => {
        if (node.kind === 'text') return node.text;
        const value = look(node.name);
        if (node.kind === 'value') return typeof value === 'object' ? '' : escaped(String(value ?? ''));
        const isEmpty = !value || (Array.isArray(value) && value.length === 0);
        if (node.isInverted) return isEmpty ? written(node.nodes) : '';
        if (isEmpty) return '';
        const elements = Array.isArray(value) ? (value as readonly unknown[]) : [null];
        return elements.map((element, index) => inScope(element, index, elements.length, node.nodes)).join('');
      })
      .join('');
  const inScope = (element: unknown, index: number, count: number, nodes: Template): string => {
    const place = { first: index === 0, last: index === count - 1 };
    scopes.push(element === null ? {} : typeof element === 'object' ? { ...element, ...place } : { '.': element, ...place });
    try {
      return written(nodes);
    } finally {
      scopes.pop();
    }
  };
  return written(template);
}
