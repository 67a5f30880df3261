import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { folder } from './folder.ts';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** A fenced block of code on a page. */
export interface DocsBlock {
  /** The path from the root of the repository. */
  readonly page: string;
  /** The line of the fence, from 1. */
  readonly line: number;
  readonly language: string;
  /** The text after the language. */
  readonly annotation: string;
  readonly text: string;
  /** Why no test runs the block: the comment `<!-- not run: … -->` on the line before it. */
  readonly notRun?: string;
}

const FENCE = /^(?: *<!-- not run: (.+) -->\n)?( *)```(\w*) ?(.*)\n([\s\S]*?)^ *```$/gm;

/** The pages that users read: README.md, CONTRIBUTING.md, docs/ and the examples. */
function docsPages(): readonly string[] {
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((name) => `docs/${name.replaceAll('\\', '/')}`)
    .filter((name) => name.endsWith('.md') && !name.startsWith('docs/typedoc/'));
  const examples = readdirSync(join(root, 'examples')).map((name) => `examples/${name}/README.md`);
  const present = examples.filter((name) => existsSync(join(root, name)));
  return ['README.md', 'CONTRIBUTING.md', ...docs.sort(), 'examples/README.md', ...present];
}

export const readPage = (page: string): string => readFileSync(join(root, page), 'utf8');

/** Every block of the pages, with the indentation of the fence removed. */
export function docsBlocks(): readonly DocsBlock[] {
  return docsPages().flatMap((page) => {
    const content = readPage(page);
    return [...content.matchAll(FENCE)].map((match) => {
      const [whole, notRun, indentation = '', language = '', annotation = '', text = ''] = match;
      const fence = match.index + whole.indexOf('```');
      return {
        page,
        line: content.slice(0, fence).split('\n').length,
        language,
        annotation,
        text: text.replaceAll(new RegExp(`^${indentation}`, 'gm'), ''),
        ...(notRun !== undefined && { notRun }),
      };
    });
  });
}

/** The sources of the example packages by package name. */
export const EXAMPLES: ReadonlyMap<string, string> = new Map(
  readdirSync(join(root, 'examples'))
    .filter((name) => existsSync(join(root, 'examples', name, 'package.json')))
    .map((name) => [`svc-example-${name}`, join(root, 'examples', name, 'src', 'index.ts')]),
);

/** The sources of packages that a block imports, so that it shares the kernel and the errors of the tests. */
function sources(): ReadonlyMap<string, string> {
  const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
  const entries = Object.entries<string[]>(compilerOptions.paths).map(
    ([name, [file = '']]) => [name, join(root, file)] as const,
  );
  return new Map([...entries, ...EXAMPLES]);
}

/** What a block imports from its folder and the page does not show. */
export interface DocsStubs {
  readonly [module: string]: string;
}

/** The name of the module of a block. */
const docsModule = ({ line, language }: DocsBlock): string => `line-${line}.${language}`;

/**
 * The code of a page as modules of one folder. Lines have the same numbers as on the page. `index.ts` is what the other
 * blocks export, if a block imports it.
 */
export function docsModules(page: string): Readonly<Record<string, string>> {
  const code = docsBlocks().filter((block) => block.page === page && ['ts', 'js'].includes(block.language));
  const modules = code.map(
    (block) => [docsModule(block), `${'\n'.repeat(block.line)}${block.text}\nexport {};\n`] as const,
  );
  const isUser = ({ text }: DocsBlock) => text.includes("from './index.js'");
  const shown = code.filter((block) => code.some(isUser) && !isUser(block));
  const index = shown.flatMap((block) => [
    `export * from './${docsModule(block)}';`,
    ...(block.text.includes('definePlugin(') ? [`export { default } from './${docsModule(block)}';`] : []),
  ]);
  return { ...Object.fromEntries(modules), ...(index.length > 0 && { 'index.ts': `${index.join('\n')}\n` }) };
}

/** Writes the modules of a page into a folder in which they can run. Returns the path of the block's module. */
export function runnableBlock(block: DocsBlock, stubs: DocsStubs = {}): string {
  const packages = [...sources()].map(([name, path]) => [`'${name}'`, `'${pathToFileURL(path).href}'`] as const);
  const modules = Object.entries(docsModules(block.page)).map(([file, text]) => [
    file,
    packages.reduce((result, [name, url]) => result.replaceAll(name, url), text),
  ]);
  const path = folder({ 'package.json': { type: 'module' }, ...stubs, ...Object.fromEntries(modules) });
  symlinkSync(join(root, 'node_modules'), join(path, 'node_modules'));
  return join(path, docsModule(block));
}
