import type { Json } from './json.ts';

/**
 * The type of a parameter that accepts `Expected`, and a value of it kept in a variable, where TypeScript has widened
 * `'foreignKey'` to `string`. A literal in the call must still be one that exists.
 */
export type Widened<Given, Expected> =
  | Expected
  | (Given & (AssumedLiterals<Given, Expected> extends Expected ? unknown : never));

/** `Given` with `any` for each `string` where `Expected` has literals, and `unknown` for an object with a key it lacks. */
type AssumedLiterals<Given, Expected> = Json extends Expected
  ? Given
  : Given extends string
    ? string extends Given
      ? [Extract<Expected, string>] extends [never]
        ? Given
        : // biome-ignore lint/suspicious/noExplicitAny: only any matches every member of a union of literals
          any
      : Given
    : Given extends readonly unknown[]
      ? { [Index in keyof Given]: AssumedLiterals<Given[Index], ValueAt<Expected, number>> }
      : Given extends object
        ? [Exclude<keyof Given, KeyOf<ObjectOf<Expected>>>] extends [never]
          ? { [Key in keyof Given]: AssumedLiterals<Given[Key], ValueAt<ObjectOf<Expected>, Key>> }
          : unknown
        : Given;

type ObjectOf<T> = Exclude<T, string | readonly unknown[]>;

// Both distribute over a union, whose own keys are only those that all members share.
export type KeyOf<T> = T extends unknown ? keyof T : never;
export type ValueAt<T, Key extends PropertyKey> = T extends unknown ? (Key extends keyof T ? T[Key] : never) : never;
