/** JSON for people and diffs: a member a line, but lists of plain values (10,080 minutes of a week) in one. */
export function readableJson(value: unknown, indent = ''): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    if (value.every((element) => typeof element !== 'object' || element === null)) return JSON.stringify(value);
    return `[\n${value.map((element) => inner + readableJson(element, inner)).join(',\n')}\n${indent}]`;
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  if (members.length === 0) return '{}';
  return `{\n${members.map(([name, member]) => `${inner}${JSON.stringify(name)}: ${readableJson(member, inner)}`).join(',\n')}\n${indent}}`;
}
