import { join } from 'node:path';
import type { NewFile } from '../../config/project/write-files.ts';
import manifest from '../../package.json' with { type: 'json' };
import { sdkSpec } from '../install.ts';
import { channelFiles } from './channel-template.ts';
import { keyValueDialectFiles } from './key-value-dialect-template.ts';
import { keyValueServerDialectFiles } from './key-value-server-dialect-template.ts';
import { sqlDialectFiles } from './sql-dialect-template.ts';
import { sqlServerDialectFiles } from './sql-server-dialect-template.ts';
import { brokerFiles, dialectFiles, type PluginFiles } from './templates.ts';

export const KINDS = ['dialect', 'channel', 'broker'] as const;
export type Kind = (typeof KINDS)[number];

const DIALECT_FILES = {
  sql: sqlDialectFiles,
  'sql-server': sqlServerDialectFiles,
  'key-value': keyValueDialectFiles,
  'key-value-server': keyValueServerDialectFiles,
};

export type DialectParts = keyof typeof DIALECT_FILES;

export type PluginRequest =
  | { readonly kind: 'dialect'; readonly parts?: DialectParts | undefined }
  | { readonly kind: 'channel' }
  | { readonly kind: 'broker'; readonly port: number };

function filesOf(request: PluginRequest, name: string, identifier: string): PluginFiles {
  switch (request.kind) {
    case 'dialect':
      return (request.parts ? DIALECT_FILES[request.parts] : dialectFiles)(name, identifier);
    case 'channel':
      return channelFiles(name, identifier);
    case 'broker':
      return brokerFiles(name, identifier, request.port);
  }
}

export const packageName = (kind: Kind, name: string): string => `svc-${kind}-${name}`;

/** A package in a folder of `root` whose tests run, and fail with a list of unfinished work if any cannot be done by a template. */
export function pluginPackage(request: PluginRequest, name: string, root: string): NewFile[] {
  const folder = packageName(request.kind, name);
  const identifier = name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
  const files = filesOf(request, name, identifier);
  return [
    {
      file: `${folder}/package.json`,
      text: `${JSON.stringify(manifestOf(folder, files, sdkSpec(join(root, folder))), null, 2)}\n`,
    },
    { file: `${folder}/tsconfig.json`, text: TSCONFIG },
    { file: `${folder}/.gitignore`, text: 'node_modules/\ndist/\n' },
    { file: `${folder}/README.md`, text: readme(folder, request.kind, identifier, files) },
    ...Object.entries(files.files).map(([path, text]) => ({ file: `${folder}/${path}`, text })),
  ];
}

function manifestOf(name: string, { description }: PluginFiles, sdk: string): object {
  const { version, engines, devDependencies } = manifest;
  return {
    name,
    version: '0.1.0',
    description: `svc ${description}.`,
    type: 'module',
    engines,
    exports: { '.': { types: './dist/src/index.d.ts', default: './dist/src/index.js' } },
    files: ['dist/src'],
    scripts: { build: 'tsc -p .', test: 'npm run build && node --test dist/test/*.test.js' },
    peerDependencies: { '@svc/sdk': `^${version}` },
    devDependencies: {
      '@svc/sdk': sdk,
      '@types/node': devDependencies['@types/node'],
      typescript: devDependencies.typescript,
    },
  };
}

const TSCONFIG = `{
  "compilerOptions": {
    "target": "ES2023",
    "module": "NodeNext",
    "types": ["node"],
    "strict": true,
    "noUncheckedIndexedAccess": true,
    "exactOptionalPropertyTypes": true,
    "verbatimModuleSyntax": true,
    "rewriteRelativeImportExtensions": true,
    "skipLibCheck": true,
    "declaration": true,
    "rootDir": ".",
    "outDir": "dist"
  },
  "include": ["src", "test"]
}
`;

const UNFINISHED = 'Each failing case describes a requirement of the contract\nand the work left to do.';
const SIMULATED = `It passes: \`test/service.ts\` simulates a service
that is made up. Each case describes a requirement of the contract.`;

function readme(
  name: string,
  kind: Kind,
  identifier: string,
  { description, configExample, steps = [] }: PluginFiles,
): string {
  return `# ${name}

svc ${description}.

\`\`\`ts
import { defineConfig } from '@svc/sdk/config';
import ${identifier} from '${name}';

export default defineConfig({
  product: 'shop',
  env: 'dev',
  ${configExample}
  plugins: [${identifier}],
});
\`\`\`

\`npm install && npm test\` builds it and runs the ${kind} suite. In a project, install what \`npm pack\` writes. ${kind === 'channel' ? SIMULATED : UNFINISHED}
${steps.length === 0 ? '' : `\nLeft to do, in this order:\n\n${steps.map((step, index) => `${index + 1}. ${step}`).join('\n')}\n`}`;
}
