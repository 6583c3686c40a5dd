import { declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin';

/** What the instrumenter hands over of Babel's syntax tree, as far as it is looked at. */
interface Path {
  readonly node: {
    readonly type: string;
    readonly key?: { readonly name?: string };
    readonly callee?: { readonly type: string; readonly object?: { readonly name?: string } };
  };
  readonly parentPath: Path | null;
}

const TEXT = ['StringLiteral', 'TemplateLiteral'];
/** Members that are nothing but texts. */
const TEXTS = ['columns'];
/** Members that people read; no verdict hangs on their wording. */
const WORDING = ['title', 'requirement', 'formula', 'label', 'summary', 'columns', 'rows', 'unit'];

/** Leaves the wording of judgements alone: the texts of WORDING and of what is pushed to `missing`. */
export const strykerPlugins = [
  declareValuePlugin(PluginKind.Ignore, 'prose', {
    shouldIgnore(path): string | undefined {
      const { node, parentPath } = path as unknown as Path;
      if (node.type === 'ArrayExpression' && TEXTS.includes(parentPath?.node.key?.name ?? '')) return 'wording';
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
