import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseSync } from 'oxc-parser';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** Replaces each value in a text. */
const VALUE = '<…>';

export interface AdviceText {
  /** The text as it is written, with `<…>` for each value. */
  readonly text: string;
  /** A file and line that contains it. */
  readonly where: string;
}

// biome-ignore lint/suspicious/noExplicitAny: a node of the syntax tree
type Node = any;

class Module {
  readonly file: string;
  readonly #source: string;
  /** The values, or functions, that a name may refer to, wherever it is declared. */
  readonly declared = new Map<string, Node[]>();
  readonly imported = new Map<string, { readonly file: string; readonly name: string }>();
  readonly calls: { readonly name: string; readonly args: readonly Node[]; readonly parents: readonly Node[] }[] = [];
  /** The values of `next` in object literals. */
  readonly advice: { readonly value: Node; readonly parents: readonly Node[] }[] = [];

  constructor(file: string) {
    this.file = file;
    this.#source = readFileSync(join(root, file), 'utf8');
    walk(parseSync(file, this.#source).program, (node, parents) => {
      if (node.type === 'CallExpression')
        this.calls.push({ name: node.callee.name ?? node.callee.property?.name, args: node.arguments, parents });
      const isAdvice = node.type === 'Property' && /^(next|nextActions)$/.test(nameOf(node.key));
      if (isAdvice && parents.at(-1).type === 'ObjectExpression') this.advice.push({ value: node.value, parents });
      if (node.type === 'VariableDeclarator' && node.id.type === 'Identifier') this.#declare(node.id.name, node.init);
      if (node.type === 'FunctionDeclaration') this.#declare(node.id.name, node);
      if (node.type === 'MethodDefinition') this.#declare(node.key.name, node.value);
      if (node.type !== 'ImportDeclaration' || !node.source.value.startsWith('.')) return;
      for (const { local, imported } of node.specifiers)
        if (imported)
          this.imported.set(local.name, { file: join(dirname(file), node.source.value), name: imported.name });
    });
  }

  #declare(name: string, node: Node): void {
    this.declared.set(name, [...(this.declared.get(name) ?? []), node]);
  }

  where({ start }: Node): string {
    return `${this.file}:${this.#source.slice(0, start).split('\n').length}`;
  }
}

function walk(node: Node, visit: (node: Node, parents: readonly Node[]) => void, parents: readonly Node[] = []): void {
  if (Array.isArray(node)) for (const one of node) walk(one, visit, parents);
  else if (typeof node === 'object' && node !== null) {
    const isNode = typeof node.type === 'string';
    if (isNode) visit(node, parents);
    for (const value of Object.values(node)) walk(value, visit, isNode ? [...parents, node] : parents);
  }
}

const isFunction = ({ type }: Node): boolean => /Function/.test(type);
const nameOf = ({ name, value }: Node): string => name ?? String(value);

/** What a function returns. */
function returned(fn: Node): Node[] {
  if (fn.body === null) return [];
  if (fn.body.type !== 'BlockStatement') return [fn.body];
  const found: Node[] = [];
  walk(fn.body, (node, parents) => {
    if (node.type === 'ReturnStatement' && node.argument && !parents.some(isFunction)) found.push(node.argument);
  });
  return found;
}

/** Every text that the `next` of an error, a finding or a result can contain. */
export function adviceTexts(): readonly AdviceText[] {
  const modules = new Map(
    ['core', 'config', 'cli', 'plugins']
      .flatMap((folder) =>
        readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
          .filter((file) => /\.tsx?$/.test(file))
          .map((file) => join(folder, file)),
      )
      .map((file) => [file, new Module(file)]),
  );
  const found = new Map<string, string>();
  const seen = new Set<Node>();

  function collect(node: Node, module: Module, parents: readonly Node[]): void {
    if (!node || seen.has(node)) return;
    seen.add(node);
    const all = (nodes: readonly Node[], inside = parents): void => {
      for (const one of nodes) collect(one, module, inside);
    };
    switch (node.type) {
      case 'Literal':
        if (typeof node.value === 'string') found.set(node.value, module.where(node));
        break;
      case 'TemplateLiteral':
        found.set(node.quasis.map(({ value }: Node) => value.cooked).join(VALUE), module.where(node));
        break;
      case 'ArrayExpression':
        all(node.elements);
        break;
      case 'ConditionalExpression':
        all([node.consequent, node.alternate]);
        break;
      case 'LogicalExpression':
        all([node.left, node.right]);
        break;
      case 'SpreadElement':
      case 'AwaitExpression':
        all([node.argument]);
        break;
      case 'ParenthesizedExpression':
      case 'TSAsExpression':
      case 'TSSatisfiesExpression':
        all([node.expression]);
        break;
      case 'Identifier':
        lookUp(node.name, module, parents);
        break;
      case 'NewExpression':
        if (node.callee.name === 'Set') all(node.arguments);
        break;
      case 'MemberExpression':
        if (node.object.type === 'ThisExpression') lookUp(nameOf(node.property), module, []);
        break;
      case 'CallExpression':
        called(node, module, parents);
        break;
      default:
        if (isFunction(node)) all(returned(node), [...parents, node]);
    }
  }

  function called({ callee, arguments: args }: Node, module: Module, parents: readonly Node[]): void {
    const method = nameOf(callee.property ?? callee);
    if (callee.type !== 'MemberExpression') collect(callee, module, parents);
    else if (callee.object.type === 'ThisExpression') lookUp(method, module, []);
    else if (/^(map|flatMap)$/.test(method)) collect(args[0], module, parents);
    else if (/^(filter|slice|concat)$/.test(method)) collect(callee.object, module, parents);
  }

  /** A parameter is looked up where its function is called. */
  function lookUp(name: string, module: Module, parents: readonly Node[]): void {
    for (const fn of parents.filter(isFunction).reverse()) {
      const index = fn.params.findIndex((param: Node) => (param.left ?? param.argument ?? param).name === name);
      if (index < 0) continue;
      const owner = fn.id?.name ?? nameOfFunction(fn, parents);
      if (owner !== undefined) collectArguments(owner, index, fn.params[index].type === 'RestElement');
      return;
    }
    const known = module.declared.get(name);
    for (const node of known ?? []) collect(node, module, []);
    const imported = known ? undefined : module.imported.get(name);
    const from = imported && modules.get(imported.file);
    if (imported && from) lookUp(imported.name, from, []);
  }

  function nameOfFunction(fn: Node, parents: readonly Node[]): string | undefined {
    const owner = parents.find((one) => one.init === fn || one.value === fn);
    return owner && nameOf(owner.id ?? owner.key);
  }

  function collectArguments(name: string, index: number, rest: boolean): void {
    for (const module of modules.values())
      for (const { args, parents } of module.calls.filter((call) => call.name === name))
        for (const argument of rest ? args.slice(index) : [args[index]]) collect(argument, module, parents);
  }

  for (const module of modules.values())
    for (const { value, parents } of module.advice) collect(value, module, parents);
  return [...found].map(([text, where]) => ({ text, where }));
}
