/**
 * A schema of zod, valibot, ArkType or another library that implements Standard Schema (https://standardschema.dev), with
 * or without its extension for JSON Schema. @experimental
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
    readonly jsonSchema?: {
      readonly [Side in 'input' | 'output']: (options: { readonly target: string }) => Record<string, unknown>;
    };
  };
}

/** @experimental */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** @experimental */
export interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The type of a valid value. @experimental */
export type StandardOutput<S> = S extends { readonly '~standard': { readonly types?: infer T } }
  ? NonNullable<T> extends { readonly output: infer Output }
    ? Output
    : unknown
  : unknown;

/** ArkType's schemas are functions. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || !('~standard' in value))
    return false;
  const standard = value['~standard'];
  return typeof standard === 'object' && standard !== null && 'validate' in standard;
}
