import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { Command, Option } from 'clipanion';
import { SEARCH_PLACES } from '../../config/load/config-file.ts';
import { LINK_FILE } from '../../config/load/env.ts';
import { SvcError, systemErrorCode } from '../../core/errors.ts';
import { isPlainObject } from '../../core/json.ts';
import { nearest } from '../../core/nearest.ts';
import manifest from '../../package.json' with { type: 'json' };
import { type CommandResult, SvcCommand } from '../base.ts';
import { installPackages, sdkSpec } from '../install.ts';
import { BUILTIN_DIALECTS, DEFAULT_DIALECT, isBuiltinDialect, projectTemplate } from '../project-template.ts';

export default class Init extends SvcCommand {
  static override paths = [['init']];
  static override usage = Command.Usage({
    description: 'Creates a project with an example schema.',
    details:
      'Writes svc.config.ts with an embedded PostgreSQL for development, or with the --dialect of your choice, an example schema, package.json and .gitignore, and installs the packages. Does not overwrite existing files. With an existing configuration, whose database may be of a plugin, only adds the SDK and .gitignore; use svc link for a link.',
    examples: [
      ['A new project in an empty folder', 'svc init'],
      ['A new project on MySQL', 'svc init --dialect mysql'],
      ['Write the files without installing', 'svc init --no-install'],
    ],
  });

  product = Option.String('--product', { description: "The name of the product. Default: the package's name." });
  dialect = Option.String('--dialect', DEFAULT_DIALECT, {
    description: `The database: ${BUILTIN_DIALECTS.join(', ')}. Default: ${DEFAULT_DIALECT}.`,
  });
  skipInstall = Option.Boolean('--no-install', false, { description: 'Writes the files without installing packages.' });

  async run(): Promise<CommandResult> {
    const root = process.cwd();
    const env = this.env ?? 'dev';
    const project = packageOf(root);
    const product = this.product ?? nameFrom(typeof project?.name === 'string' ? project.name : basename(root));

    for (const [flag, value] of Object.entries({ '--product': product, '--env': env })) {
      if (/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$/.test(value)) continue;
      throw new SvcError('usage', `${flag} must be a name with only A-Z a-z 0-9 _ . -`, {
        state: 'Nothing was written.',
      });
    }

    if (!isBuiltinDialect(this.dialect)) throw unknownDialect(this.dialect);
    const template = projectTemplate(this.dialect, product, env);

    const created: string[] = [];
    const existing: string[] = [];
    const write = (file: string, text: string): void => {
      const path = join(root, file);
      mkdirSync(dirname(path), { recursive: true });
      try {
        writeFileSync(path, text, { flag: 'wx' });
        created.push(file);
      } catch (error) {
        if (systemErrorCode(error) !== 'EEXIST') throw error;
        existing.push(file);
      }
    };

    const config = SEARCH_PLACES.find((place) =>
      place === 'package.json' ? Object.hasOwn(project ?? {}, 'svc') : existsSync(join(root, place)),
    );
    if (config === undefined) {
      write('svc.config.ts', template.config);
      write(LINK_FILE, `${JSON.stringify({ product, env }, null, 2)}\n`);
      write('svc/database/schema.json', template.schema);
    } else if (config !== 'package.json') existing.push(config);
    const missing = writePackage(root, project, product, config === undefined ? template.packages : []);
    (project ? existing : created).push('package.json');
    if (extendGitignore(root)) created.push('.gitignore');

    for (const file of created) this.print(`created  ${file}`);
    for (const file of existing)
      this.print(`${missing.length > 0 && file === 'package.json' ? 'extended' : 'kept    '} ${file}`);
    if (!this.skipInstall) await installPackages(root, (line) => this.note(line));
    return {
      // An existing configuration has its own product and environments.
      data: { ...(config === undefined && { product, env }), created, existing },
      nextActions: [
        ...(this.skipInstall ? ['npm install'] : []),
        ...(config === undefined && template.variable ? [`Set ${template.variable}, in .env for example.`] : []),
        ...(config !== undefined && this.env !== undefined ? [`npx svc link --env ${env}`] : []),
        ...(config === undefined
          ? ['npx svc db schema generate', 'npx svc db migrate', 'npx svc db migrate status']
          : ['npx svc doctor']),
      ],
    };
  }
}

function unknownDialect(name: string): SvcError {
  const near = nearest(name, BUILTIN_DIALECTS);
  return new SvcError('usage', `svc init has no dialect "${name}".`, {
    why: `It knows ${BUILTIN_DIALECTS.join(', ')}.`,
    state: 'Nothing was written.',
    next: [
      near === undefined ? 'svc init --help' : `svc init --dialect ${near}`,
      `For the dialect of a plugin, write svc.config: plugins: ['<package>'], databases: { main: { dialect: '${name}', url: '<url>' } }, then: svc init    adds what is missing`,
    ],
  });
}

function packageOf(root: string): Record<string, unknown> | undefined {
  const file = join(root, 'package.json');
  if (!existsSync(file)) return undefined;
  try {
    const found: unknown = JSON.parse(readFileSync(file, 'utf8'));
    if (isPlainObject(found)) return found;
  } catch {
    // Reported below, like other values that are not objects.
  }
  throw new SvcError('file_invalid', 'package.json is not a JSON object.', {
    state: 'Nothing was written.',
    next: ['Fix package.json, then run svc init again.'],
    where: file,
  });
}

/** Adds missing packages to package.json; returns their names. */
function writePackage(
  root: string,
  project: Record<string, unknown> | undefined,
  product: string,
  packages: readonly string[],
): string[] {
  const listed = { ...asObject(project?.devDependencies), ...asObject(project?.dependencies) };
  const versions: Readonly<Record<string, string>> = manifest.devDependencies;
  const required = {
    ...Object.fromEntries(packages.map((name) => [name, versions[name]])),
    [manifest.name]: sdkSpec(root),
  };
  const missing = Object.entries(required).filter(([name]) => !(name in listed));
  if (project && missing.length === 0) return [];
  const base = project ?? { name: product.toLowerCase(), private: true, type: 'module' };
  const dependencies = { ...asObject(base.dependencies), ...Object.fromEntries(missing) };
  writeFileSync(join(root, 'package.json'), `${JSON.stringify({ ...base, dependencies }, null, 2)}\n`);
  return missing.map(([name]) => name);
}

function asObject(value: unknown): Record<string, unknown> {
  return isPlainObject(value) ? value : {};
}

function extendGitignore(root: string): boolean {
  const file = resolve(root, '.gitignore');
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const lines = new Set(text.split(/\r?\n/).map((line) => line.trim()));
  const missing = ['node_modules/', '.svc/', '.env'].filter(
    (line) => !lines.has(line) && !lines.has(line.replace(/\/$/, '')),
  );
  if (missing.length === 0) return false;
  writeFileSync(file, `${text}${text === '' || text.endsWith('\n') ? '' : '\n'}${missing.join('\n')}\n`);
  return true;
}

/** Derives a product name from the name of a package or folder. */
function nameFrom(text: string): string {
  return (
    text
      .replace(/^@[^/]*\//, '')
      .replace(/[^A-Za-z0-9_.-]+/g, '-')
      .replace(/^[-.]+/, '')
      .slice(0, 63) || 'app'
  );
}
