import { types } from 'node:util';
import { isPlainObject } from './json.ts';
import { nearest } from './nearest.ts';

/** The expected shape of external JSON. An `undefined` property counts as absent. */
export type Shape =
  | 'string'
  | 'boolean'
  | 'number'
  | 'json'
  | 'any'
  | { readonly oneOf: readonly string[] }
  | { readonly list: Shape }
  | { readonly map: Shape }
  | ObjectShape
  | { readonly either: readonly [Shape, Shape] }
  | { readonly nullable: Shape };

export interface ObjectShape {
  readonly properties: Readonly<Record<string, Shape>>;
  readonly required?: readonly string[];
}

export type Path = readonly (string | number)[];

export interface Problem {
  readonly path: Path;
  readonly text: string;
}

/** All places where a value does not match a shape. Never throws. */
export function shapeProblems(value: unknown, shape: Shape, path: Path = []): Problem[] {
  if (shape === 'any') return [];
  if (shape === 'json') return jsonProblems(value, path);
  if (typeof shape === 'string') return typeof value === shape ? [] : [expected(value, `a ${shape}`, path)];
  if ('oneOf' in shape) {
    return typeof value === 'string' && shape.oneOf.includes(value)
      ? []
      : [expected(value, `one of ${shape.oneOf.join(', ')}`, path)];
  }
  if ('nullable' in shape) return value === null ? [] : shapeProblems(value, shape.nullable, path);
  if ('either' in shape) {
    const [simple, full] = shape.either;
    return shapeProblems(value, simple, path).length === 0 ? [] : shapeProblems(value, full, path);
  }
  if ('list' in shape) {
    if (!Array.isArray(value)) return [expected(value, 'an array', path)];
    return value.flatMap((item, index) => shapeProblems(item, shape.list, [...path, index]));
  }
  if (!isPlainObject(value)) return [expected(value, 'an object', path)];
  if ('map' in shape) {
    return Object.entries(value).flatMap(([key, item]) => shapeProblems(item, shape.map, [...path, key]));
  }
  return propertyProblems(value, shape.properties, shape.required ?? [], path);
}

function propertyProblems(
  value: Record<string, unknown>,
  properties: Readonly<Record<string, Shape>>,
  required: readonly string[],
  path: Path,
): Problem[] {
  const found: Problem[] = [];
  for (const key of Object.keys(value)) {
    if (value[key] === undefined) continue;
    const shape = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (shape) {
      found.push(...shapeProblems(value[key], shape, [...path, key]));
    } else {
      const known = Object.keys(properties);
      const near = nearest(key, known);
      const hint = near ? `did you mean "${near}"?` : `known are ${known.join(', ')}`;
      found.push({ path: [...path, key], text: `is not a known property; ${hint}` });
    }
  }
  for (const key of required) {
    if (!Object.hasOwn(value, key) || value[key] === undefined)
      found.push({ path: [...path, key], text: 'is missing' });
  }
  return found;
}

function jsonProblems(value: unknown, path: Path): Problem[] {
  if (types.isDate(value)) {
    const what = Number.isNaN(value.getTime()) ? 'an invalid Date' : 'a Date';
    return [{ path, text: `is ${what}; only a field of type timestamp accepts a Date, so write it as a string` }];
  }
  try {
    return isJson(value) ? [] : [{ path, text: 'is not a JSON value' }];
  } catch {
    return [{ path, text: 'is nested too deeply' }];
  }
}

function isJson(value: unknown): boolean {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return true;
  if (typeof value === 'number') return Number.isFinite(value);
  if (Array.isArray(value)) {
    // Unlike `every`, this sees the holes of a sparse array.
    for (const item of value) if (!isJson(item)) return false;
    return true;
  }
  return isPlainObject(value) && Object.values(value).every((item) => item === undefined || isJson(item));
}

function expected(value: unknown, what: string, path: Path): Problem {
  const got = value === null ? 'null' : Array.isArray(value) ? 'an array' : typeof value;
  return { path, text: `is ${got}, expected ${what}` };
}

/** `fields[0].type is missing` */
export function problemText({ path, text }: Problem): string {
  return path.length === 0 ? `It ${text}.` : `${pathText(path)} ${text}.`;
}

export function pathText(path: Path): string {
  return path.reduce<string>((before, step) => {
    if (typeof step === 'number') return `${before}[${step}]`;
    return before === '' ? step : `${before}.${step}`;
  }, '');
}
