import type { NewFile } from '../../config/project/write-files.ts';
import manifest from '../../package.json' with { type: 'json' };
import { sdkSpec } from '../install.ts';
import { brokerFiles, channelFiles, dialectFiles, type PluginFiles } from './templates.ts';

export const KINDS = ['dialect', 'channel', 'broker'] as const;
export type Kind = (typeof KINDS)[number];

const FILES: Readonly<Record<Kind, (name: string, identifier: string) => PluginFiles>> = {
  dialect: dialectFiles,
  channel: channelFiles,
  broker: brokerFiles,
};

export const packageName = (kind: Kind, name: string): string => `svc-${kind}-${name}`;

/** A package whose tests run and fail with a list of unfinished work. */
export function pluginPackage(kind: Kind, name: string): NewFile[] {
  const folder = packageName(kind, name);
  const identifier = name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
  const files = FILES[kind](name, identifier);
  return [
    { file: `${folder}/package.json`, text: `${JSON.stringify(manifestOf(folder, files), null, 2)}\n` },
    { file: `${folder}/tsconfig.json`, text: TSCONFIG },
    { file: `${folder}/.gitignore`, text: 'node_modules/\ndist/\n' },
    { file: `${folder}/README.md`, text: readme(folder, kind, identifier, files) },
    { file: `${folder}/src/index.ts`, text: files.source },
    { file: `${folder}/test/suite.test.ts`, text: files.test },
  ];
}

function manifestOf(name: string, { description }: PluginFiles): object {
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
      '@svc/sdk': sdkSpec(),
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
    "declaration": true,
    "rootDir": ".",
    "outDir": "dist"
  },
  "include": ["src", "test"]
}
`;

function readme(name: string, kind: Kind, identifier: string, { description, configExample }: PluginFiles): string {
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

\`npm install && npm test\` builds it and runs the ${kind} suite. Each failing case describes a requirement of the contract
and the work left to do.
`;
}
