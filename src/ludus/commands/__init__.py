"""What the commands of `ludus` do, one file each. They print; nobody imports them but the CLI."""
