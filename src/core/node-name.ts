import { DRAWN_AS_BLANK } from './text.ts';

export const MAX_NODE_NAME = 64;

/** For error messages. */
export const NODE_NAME_ALLOWED = `1 to ${MAX_NODE_NAME} letters, digits, spaces and _ - . /, no space at either end`;

/**
 * Letters and digits of any script except invisible ones (Hangul fillers, variation selectors), beginning with no mark: two names that look the same must not be
 * two nodes, and no name may control a terminal or change the writing direction.
 */
export const NODE_NAME = new RegExp(
  String.raw`^(?![ \p{M}])[[\p{L}\p{M}\p{N} _.\/\-]--[${DRAWN_AS_BLANK}]]{1,${MAX_NODE_NAME}}(?<! )$`,
  'v',
);

/** Whether a name is a valid `node_name`; used for this node, nodes on the network and nodes in the database. */
export function isNodeName(name: string): boolean {
  return NODE_NAME.test(name);
}
