import { declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin';

/** The members of Babel's syntax tree that this file uses. */
interface Path {
  readonly node: {
    readonly type: string;
    readonly key?: { readonly name?: string };
    readonly callee?: { readonly object?: { readonly name?: string } };
  };
  readonly parentPath: Path | null;
}

const TEXT = ['StringLiteral', 'TemplateLiteral'];
/** Members of a judgement that are shown to people; no verdict depends on their wording. */
const WORDING = ['title', 'requirement', 'formula', 'label', 'summary', 'columns', 'rows', 'unit'];

/** Excludes wording from mutation: the members of WORDING, and text that is pushed to `missing`. */
export const strykerPlugins = [
  declareValuePlugin(PluginKind.Ignore, 'wording', {
    shouldIgnore(path): string | undefined {
      const { node, parentPath } = path as unknown as Path;
      if (node.type === 'ArrayExpression' && parentPath?.node.key?.name === 'columns') return 'wording';
      if (!TEXT.includes(node.type)) return undefined;
      for (let up = parentPath; up !== null; up = up.parentPath) {
        if (up.node.type === 'ObjectProperty' && WORDING.includes(up.node.key?.name ?? '')) return 'wording';
        if (up.node.type === 'CallExpression' && up.node.callee?.object?.name === 'missing') return 'wording';
        if (up.node.type.endsWith('Statement') || up.node.type.endsWith('Function')) return undefined;
      }
      return undefined;
    },
  }),
];
