import type { ReactNode } from 'react';

export interface ChoiceProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly options: readonly { readonly value: Value; readonly label: string; readonly disabled?: boolean }[];
  readonly onChange: (value: Value) => void;
}

/** One of a few, side by side: radio buttons, so that arrow keys and screen readers know them. */
export function Choice<Value extends string>({ label, value, options, onChange }: ChoiceProps<Value>): ReactNode {
  return (
    <fieldset className="flex rounded-lg bg-muted p-0.5 text-[0.8125rem]">
      <legend className="sr-only">{label}</legend>
      {options.map((option) => (
        <label
          key={option.value}
          className="flex-1 cursor-pointer rounded-md px-2.5 py-1 text-center font-medium text-muted-foreground has-checked:bg-card has-checked:text-foreground has-checked:shadow-sm has-disabled:cursor-not-allowed has-disabled:opacity-50 has-focus-visible:outline-2 has-focus-visible:outline-ring dark:has-checked:bg-border"
        >
          <input
            type="radio"
            name={label}
            className="sr-only"
            checked={option.value === value}
            disabled={option.disabled}
            onChange={() => onChange(option.value)}
          />
          {option.label}
        </label>
      ))}
    </fieldset>
  );
}
