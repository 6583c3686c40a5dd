export const MAX_NODE_NAME = 64;

/** In words, for whoever has another one. */
export const NODE_NAME_ALLOWED = `1 to ${MAX_NODE_NAME} letters, digits, spaces and _ - . /, no space at either end`;

/**
 * Letters and digits of any script, but none of those that show nothing (Hangul fillers, variation selectors): two names that look the
 * same to people should not be two nodes because of a character that nobody sees, and no name may steer a terminal or turn a line around.
 */
export const NODE_NAME = new RegExp(
  String.raw`^(?! )[[\p{L}\p{M}\p{N} _.\/\-]--\p{Default_Ignorable_Code_Point}]{1,${MAX_NODE_NAME}}(?<! )$`,
  'v',
);

/** Whether a `node_name` of health statuses and alert ids is one: of this node, of those on the network, and of those on the disk. */
export function isNodeName(name: string): boolean {
  return NODE_NAME.test(name);
}
