import { html } from 'hono/html';
import { parametersForm, readChanges, renderParametersForm } from '../../config/sdk/callback/form/parameters-form.tsx';
import type { FormProblem } from '../../config/sdk/callback/form/render.tsx';
import { page } from '../../config/sdk/callback/layout.tsx';
import type { StoredSchema } from '../../core/tool/json-schema.ts';
import type { ToolParameters } from '../../core/tool/parameters.ts';
import { HtmlForm } from './html-form.ts';

/** The fields of the parameters of a call, without the rest of the page. */
export class FormUnderTest {
  readonly #schema: StoredSchema;
  readonly #parameters: ToolParameters;

  constructor(schema: object, parameters: object) {
    this.#schema = schema as StoredSchema;
    this.#parameters = parameters as ToolParameters;
  }

  /** As a browser has it, first or with what was posted. */
  open(posted?: URLSearchParams, problems: readonly FormProblem[] = []): HtmlForm {
    const form = parametersForm(this.#schema, this.#parameters, posted);
    const fields = renderParametersForm(form, problems, posted !== undefined);
    const frame = html`<form method="post"><input type="hidden" name="view" value="">${fields}<button name="action" value="approve">Approve</button></form>`;
    return new HtmlForm(page('Test', frame));
  }

  /** After a button of a list or an object. */
  press(form: HtmlForm, button: string): HtmlForm {
    return this.open(form.press(button));
  }

  read(form: HtmlForm): ReturnType<typeof readChanges> {
    const posted = new URLSearchParams(form.press('Approve').toString());
    return readChanges(parametersForm(this.#schema, this.#parameters, posted), this.#parameters);
  }

  /** What changes with these texts, by label. Throws for problems. */
  change(texts: Readonly<Record<string, string>>): ToolParameters {
    const form = this.open();
    for (const [label, text] of Object.entries(texts)) form.fill(form.named(label)[0] ?? '', text);
    return this.changes(form);
  }

  changes(form: HtmlForm): ToolParameters {
    const read = this.read(form);
    if (read.problems.length === 0) return read.changes;
    throw new Error(read.problems.map(({ path, text }) => `${path}: ${text}`).join(' '));
  }
}
