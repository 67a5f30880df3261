import type { Json } from '../json.ts';

export const PARAMETER_TYPES = ['string', 'number', 'integer', 'boolean', 'array', 'object'] as const;
/** @experimental */
export type ParameterType = (typeof PARAMETER_TYPES)[number];

/** SPEC 2.3, with JSON Schema keywords (draft 7) beside. @experimental */
export interface ParameterDefinition {
  readonly type: ParameterType;
  /** A parameter with a default is never missing. */
  readonly required?: boolean;
  readonly default?: Json;
  readonly description?: string;
  /** Shown to nobody who was sent the request; who decides must have seen it all the same. */
  readonly sensitive?: boolean;
  readonly enum?: readonly Json[];
  readonly items?: { readonly type?: ParameterType; readonly [keyword: string]: unknown };
  readonly [keyword: string]: unknown;
}

/** @experimental */
export type ParameterMap = { readonly [name: string]: ParameterDefinition };

/** What a handler gets: names that are required or have a default are there. @experimental */
export type ParametersOf<M extends ParameterMap> = {
  readonly [N in keyof M as Present<M[N]> extends true ? N : never]: ValueOf<M[N]>;
} & { readonly [N in keyof M as Present<M[N]> extends true ? never : N]?: ValueOf<M[N]> };

type Present<D> = D extends { readonly required: true } ? true : D extends { readonly default: Json } ? true : false;

type ValueOf<D extends { readonly type?: unknown }> = D extends { readonly enum: readonly (infer V)[] }
  ? V
  : D extends { readonly type: 'array'; readonly items: infer I extends { readonly type: ParameterType } }
    ? readonly Plain<I['type']>[]
    : D['type'] extends ParameterType
      ? Plain<D['type']>
      : Json;

type Plain<T extends ParameterType> = {
  string: string;
  number: number;
  integer: number;
  boolean: boolean;
  array: readonly Json[];
  object: { readonly [name: string]: Json };
}[T];
