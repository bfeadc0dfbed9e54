import { useId, useState, type ComponentProps, type ReactNode } from 'react';
import { SearchIcon } from './icons.tsx';

const box = 'h-9 w-full min-w-0 rounded-lg border border-input bg-background px-3 text-sm';

interface FieldProps {
  readonly label: string;
  /** What is expected, or what it means. */
  readonly help?: string | undefined;
  /** Why the value is refused. */
  readonly problem?: string | undefined;
  readonly children: (ids: { readonly id: string; readonly describedBy: string | undefined }) => ReactNode;
}

/** A label, a control and what is to be said about it. */
function Field({ label, help, problem, children }: FieldProps): ReactNode {
  const id = useId();
  const said = [help === undefined ? [] : [`${id}-help`], problem === undefined ? [] : [`${id}-problem`]].flat();
  return (
    <div className="min-w-0">
      <label htmlFor={id} className="mb-1 block text-xs font-medium text-muted-foreground">
        {label}
      </label>
      {children({ id, describedBy: said.length === 0 ? undefined : said.join(' ') })}
      {help !== undefined && (
        <p id={`${id}-help`} className="mt-1 text-xs text-muted-foreground">
          {help}
        </p>
      )}
      {problem !== undefined && (
        <p id={`${id}-problem`} role="alert" className="mt-1 text-xs text-danger">
          {problem}
        </p>
      )}
    </div>
  );
}

type Described = Pick<FieldProps, 'label' | 'help' | 'problem'>;

export interface TextFieldProps extends Described, Omit<ComponentProps<'input'>, 'value' | 'onChange' | 'id'> {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

export function TextField({ label, help, problem, value, onChange, className = '', ...rest }: TextFieldProps): ReactNode {
  return (
    <Field label={label} help={help} problem={problem}>
      {({ id, describedBy }) => (
        <input
          id={id}
          aria-describedby={describedBy}
          aria-invalid={problem !== undefined}
          className={`${box} ${className}`}
          value={value}
          onChange={({ target }) => onChange(target.value)}
          {...rest}
        />
      )}
    </Field>
  );
}

export interface AreaFieldProps extends Described, Omit<ComponentProps<'textarea'>, 'value' | 'onChange' | 'id'> {
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** For a text of several lines. */
export function AreaField({ label, help, problem, value, onChange, ...rest }: AreaFieldProps): ReactNode {
  return (
    <Field label={label} help={help} problem={problem}>
      {({ id, describedBy }) => (
        <textarea
          id={id}
          aria-describedby={describedBy}
          aria-invalid={problem !== undefined}
          className="w-full min-w-0 rounded-lg border border-input bg-background px-3 py-2 text-sm"
          value={value}
          onChange={({ target }) => onChange(target.value)}
          {...rest}
        />
      )}
    </Field>
  );
}

export interface SelectFieldProps<Value extends string> extends Described {
  readonly value: Value;
  readonly options: readonly { readonly value: Value; readonly label: string }[];
  readonly onChange: (value: Value) => void;
}

export function SelectField<Value extends string>({ label, help, problem, value, options, onChange }: SelectFieldProps<Value>): ReactNode {
  return (
    <Field label={label} help={help} problem={problem}>
      {({ id, describedBy }) => (
        <select
          id={id}
          aria-describedby={describedBy}
          className={box}
          value={value}
          onChange={({ target }) => {
            const chosen = options.find((option) => option.value === target.value);
            if (chosen !== undefined) onChange(chosen.value);
          }}
        >
          {options.map((option) => (
            <option key={option.value} value={option.value}>
              {option.label}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

export interface Typed<Field extends string> {
  readonly typed: ReadonlyMap<Field, string>;
  readonly set: (field: Field) => (text: string) => void;
  /** Once that is stored; what has been written since is not. */
  readonly clear: (sent: ReadonlyMap<Field, string>) => void;
}

/**
 * What is written into a form about what is stored. Only that is sent: the other fields go on to show what is stored,
 * also by another one, and store nothing old over it.
 */
export function useTyped<Field extends string>(): Typed<Field> {
  const [typed, setTyped] = useState<ReadonlyMap<Field, string>>(new Map());
  return {
    typed,
    set: (field) => (text) => setTyped((before) => new Map([...before, [field, text]])),
    clear: (sent) => setTyped((now) => new Map([...now].filter(([field, text]) => text !== sent.get(field)))),
  };
}

export interface SearchFieldProps {
  readonly label: string;
  readonly placeholder?: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

/** Narrows a list while it is typed in; the list says what it found. */
export function SearchField({ label, placeholder, value, onChange }: SearchFieldProps): ReactNode {
  return (
    <div className="relative min-w-0 flex-1">
      <SearchIcon className="pointer-events-none absolute top-2.5 left-2.5 size-4 text-muted-foreground" />
      <input
        type="search"
        aria-label={label}
        placeholder={placeholder ?? label}
        className={`${box} pl-8`}
        value={value}
        onChange={({ target }) => onChange(target.value)}
      />
    </div>
  );
}
