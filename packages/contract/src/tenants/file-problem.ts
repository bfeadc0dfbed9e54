import { z } from 'zod';
import { invalidFields } from '../errors/app-error.ts';
import { SaidParams, type Said } from '../values/said.ts';

type IssueCode = z.core.$ZodIssue['code'];

/** By what a schema finds in a field of a front matter. */
const fieldCodes = {
  invalid_type: 'field_type',
  too_big: 'field_too_big',
  too_small: 'field_too_small',
  invalid_format: 'field_format',
  not_multiple_of: 'field_multiple',
  unrecognized_keys: 'field_unknown',
  invalid_union: 'field_kind',
  invalid_key: 'field_key',
  invalid_element: 'field_element',
  invalid_value: 'field_value',
  custom: 'field_rule',
} as const satisfies Readonly<Record<IssueCode, string>>;

/** Everything that a file of the tenant's can have wrong with it. */
export const fileProblemCodes = [
  'agent_name_taken',
  'agent_file_name',
  'skill_folder_name',
  'skill_file_missing',
  'skill_name_differs',
  'file_unreadable',
  'front_matter_opening',
  'front_matter_unclosed',
  'front_matter_too_long',
  'front_matter_language',
  'front_matter_yaml',
  fieldCodes.invalid_type,
  fieldCodes.too_big,
  fieldCodes.too_small,
  fieldCodes.invalid_format,
  fieldCodes.not_multiple_of,
  fieldCodes.unrecognized_keys,
  fieldCodes.invalid_union,
  fieldCodes.invalid_key,
  fieldCodes.invalid_element,
  fieldCodes.invalid_value,
  fieldCodes.custom,
] as const;
export type FileProblemCode = (typeof fileProblemCodes)[number];

/** One thing that is wrong with a file. */
export const FileProblem = z
  .object({
    message: z.string(),
    code: z.enum(fileProblemCodes).or(z.string()).meta({ description: 'Which sentence it is; there may be more of them later.' }),
    params: SaidParams,
  })
  .meta({ id: 'FileProblem' });
export type FileProblem = Said<FileProblemCode>;

/** What is wrong with the fields of a front matter, one each; of many the first. */
export function toFieldProblems(error: Pick<z.ZodError, 'issues'>): FileProblem[] {
  return invalidFields(error).flatMap(({ path, message }, index) => {
    const issue = error.issues[index];
    if (issue === undefined) return [];
    const params = { field: path === '' ? 'front matter' : path, ...listParams(issue, message) };
    return [{ message: [path, message].filter((part) => part !== '').join(': '), code: fieldCodes[issue.code], params }];
  });
}

/** What is wrong is in words of a schema where the issue has no figures of its own. */
function listParams(issue: z.core.$ZodIssue, reason: string): Readonly<Record<string, string>> {
  switch (issue.code) {
    case 'invalid_type':
      return { expected: issue.expected };
    case 'too_big':
      return { maximum: String(issue.maximum) };
    case 'too_small':
      return { minimum: String(issue.minimum) };
    case 'unrecognized_keys':
      return { keys: issue.keys.join(', ') };
    case 'invalid_value':
      return { values: issue.values.map(String).join(', ') };
    case 'not_multiple_of':
      return { divisor: String(issue.divisor) };
    case 'invalid_format':
    case 'invalid_union':
    case 'invalid_key':
    case 'invalid_element':
    case 'custom':
      return { reason };
  }
}
