/* A drop-down list with a label. */
export function Choice(props: {
    label: string;
    value: string;
    /* Value and text of each option. */
    options: readonly (readonly [string, string])[];
    onChoose: (value: string) => void;
    /* Where the label has no room, the options have it. */
    isSpelledOut?: boolean;
    title?: string;
}) {
    return (
        <label>
            <span class="label">{props.label}</span>{" "}
            <select
                value={props.value}
                title={props.title}
                onChange={(event) => props.onChoose(event.currentTarget.value)}
            >
                {props.options.map(([value, text]) => (
                    <option key={value} value={value}>
                        {props.isSpelledOut ? `${props.label} ${text}` : text}
                    </option>
                ))}
            </select>
        </label>
    );
}
