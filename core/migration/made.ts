import type { Operation } from '../schema/operation.ts';
import { touches } from './touches.ts';

/**
 * Collections that a run makes itself: until it is over they hold nothing of anybody, and what destroys data destroys
 * none there. One that a raw statement names may have got rows from elsewhere.
 */
export class Made {
  readonly #names = new Set<string>();

  hasAll(operation: Operation): boolean {
    const touched = touches(operation);
    return touched.length > 0 && touched.every((name) => this.#names.has(name));
  }

  /** The operation stands in the plan; without a statement it found everything there. */
  note(operation: Operation, statements: number): void {
    switch (operation.type) {
      case 'createCollection':
        if (statements > 0) this.#names.add(operation.name);
        return;
      case 'dropCollection':
        this.#names.delete(operation.collection);
        return;
      case 'renameCollection':
        if (this.#names.delete(operation.collection)) this.#names.add(operation.to);
        return;
      case 'raw': {
        const text = JSON.stringify(operation).toLowerCase();
        for (const name of this.#names) if (text.includes(name.toLowerCase())) this.#names.delete(name);
        return;
      }
      default:
        return;
    }
  }
}
